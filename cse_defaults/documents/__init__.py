"""Documents: folders of Markdown, HTML and plain files as passages under their headings.

Every parser here takes time in proportion to a file, whatever is in it. ``pyromark`` reads Markdown
(pulldown-cmark: 1 MB of hostile marks in 1.1 s, where markdown-it-py takes minutes), ``lxml`` HTML
(libxml2: 1.1 s, where selectolax and resiliparse, on lexbor, take minutes for nested or misnested
tags), and ``sentencex`` divides paragraphs into sentences.
"""
