"""What schedules are built with: loops, lanes, memory, bodies, epilogues."""
