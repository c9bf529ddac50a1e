"""Execute notebooks in ordinary Jupyter kernels, and offer kernels that are warm."""
