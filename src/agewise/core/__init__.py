"""Every compiled kernel, and how kernels are compiled: arrays and scalars in, arrays out."""
