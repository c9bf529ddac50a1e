"""Execute notebooks in ordinary Jupyter kernels."""
