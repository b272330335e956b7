"""One folder per paper, and what all papers share.

`ERLIB_PAPERS` names a folder with further papers, for one that is not part of erlib.
"""

import os

__path__ += filter(None, [os.environ.get("ERLIB_PAPERS")])
