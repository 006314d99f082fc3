"""The census: what is live, cached, free and resident, and what that means."""
