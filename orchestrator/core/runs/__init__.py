"""A run's life: quota, states, policy, verdict, record, evidence."""
