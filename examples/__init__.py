"""Small files to score: labels and predictions of the three exams, made by `examples.make`."""
