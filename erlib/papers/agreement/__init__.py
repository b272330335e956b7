""" "Easy to Decide, Hard to Agree" (Jukić, Tutek, Šnajder)."""
