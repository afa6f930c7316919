"""NVIDIA GPUs, asked through the vendor's own tool."""
