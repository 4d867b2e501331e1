"""A course as files to take away: worksheets, slides, quizzes for learning platforms, cards and tables."""
