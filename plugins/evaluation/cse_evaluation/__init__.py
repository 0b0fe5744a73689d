"""Evaluation suites: STS, transfer, retrieval, labelled texts, Chinese, words alone."""
