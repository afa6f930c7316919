"""What every room uses: clock, reporter, durable files, tar, interruption."""
