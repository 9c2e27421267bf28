"""Reports about a run: statistics, signs of trouble, pictures and the page that shows them."""
