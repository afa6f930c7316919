"""The starter kit of the recognition track."""
