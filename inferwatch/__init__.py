"""inferwatch"""
