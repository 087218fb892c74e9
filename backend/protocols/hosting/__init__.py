"""The desks of a Host: each answers the messages of one kind of work. None ever sees a label or a leaf weight."""
