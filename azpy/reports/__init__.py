"""What a person sees of a run: statistics, signs of trouble, pictures and the page that shows them."""
