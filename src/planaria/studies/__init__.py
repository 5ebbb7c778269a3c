"""The five papers and the comparison as studies: runs, facts, claims, pages, one judge."""
