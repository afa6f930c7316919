"""What tests share: simulators, forgers, stories, fixtures."""
