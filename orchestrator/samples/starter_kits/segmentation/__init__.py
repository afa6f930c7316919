"""The starter kit of the segmentation track."""
