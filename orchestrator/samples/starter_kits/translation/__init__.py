"""The starter kit of the translation track."""
