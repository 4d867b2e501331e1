"""Who is asked: the model seam and its adapters."""
