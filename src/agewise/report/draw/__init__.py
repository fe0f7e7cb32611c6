"""One function a picture, for the page and for papers alike: numbers in, artists on an axis out."""
