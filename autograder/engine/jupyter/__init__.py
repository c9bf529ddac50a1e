"""Execution in ordinary Jupyter kernels, and kernels that are warm before they are asked for."""
