"""The conversations about own code, in the class report and in exports."""
