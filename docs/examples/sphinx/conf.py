project = "Capacity notes"
html_theme = "alabaster"
html_show_copyright = False
html_js_files = [("https://HOST/servecast-embed.js", {"async": "async"})]
