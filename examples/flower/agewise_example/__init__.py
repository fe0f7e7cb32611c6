"""A Flower app whose clients are chosen by age and by link."""
