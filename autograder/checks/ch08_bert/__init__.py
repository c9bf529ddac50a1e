"""The checks of chapter 08: BERT and its family."""
