"""Language models as folders of files that browsers and Node run."""
