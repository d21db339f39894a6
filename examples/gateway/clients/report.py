"""What a program sees of each of its calls, as a line of JSON."""
import json
import os
import sys


def report(call):
    """Makes the calls one after the other, as many as the command line says."""
    for n in range(1, 1 + int(sys.argv[1] if len(sys.argv) > 1 else 1)):
        try:
            seen = {"ok": True, "value": call(os.environ.get("RUN", "") + str(n))}
        except Exception as e:  # whatever it is, the program sees it
            status = getattr(e, "http_status", None) or getattr(e, "status", None)
            seen = {"ok": False, "error": type(e).__name__, "status": status, "code": getattr(e, "code", None), "message": str(e)}
        print(json.dumps(seen), flush=True)
