"""The census: live, cached, free and resident bytes, and what they mean."""
