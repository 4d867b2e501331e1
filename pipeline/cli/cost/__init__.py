"""`cost`: what was spent on what. Each file reads the books, or writes one form of what they say."""
