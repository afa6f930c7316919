"""A corpus in the layout of the Épée dataset."""
