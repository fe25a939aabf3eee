from hypothesis import settings

# The first example of a test pays for what is imported and checked on the way.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
