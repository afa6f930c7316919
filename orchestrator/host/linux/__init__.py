"""What the Linux kernel says of the host."""
