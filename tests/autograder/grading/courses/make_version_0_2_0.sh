#!/usr/bin/env bash
# Make version-0.2.0.tar.xz: a course folder that version 0.2.0 released, graded and marked.
#
#     git worktree add /tmp/v020 386b137
#     bash tests/autograder/grading/courses/make_version_0_2_0.sh /tmp/v020 .venv/bin/python
#
# 386b137 is the commit that wrote the section of 0.2.0 into the changelog. The folder holds chapter 03 with its students' wheel, two
# students of the sample class, their grades, and one mark that a person gave. Feedback pages, the second copy of the wheel, and recordings
# of more than 40 kB in the wheel are left out: the archive is a tenth of its size without them, and a grade does not depend on them.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version=$(cd "$1" && pwd)
python=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
course=$(mktemp -d)/course
export PYTHONPATH=$version OMP_NUM_THREADS=1
cd "$version"

tfcourse() { "$python" -c "from autograder.cli import main; main()" "$@" --course "$course"; }
tfcourse assign 03
tfcourse sample-class --students 2
tfcourse autograde 03 --allow-weaker-isolation --jobs 1

"$python" - "$course" <<'PYTHON'
import sys
from nbgrader.api import Gradebook

with Gradebook(f"sqlite:///{sys.argv[1]}/gradebook.db") as book:
    submission = book.find_submission("03_scaled_dot_product", "yara-fontaine")
    (grade,) = [grade for notebook in submission.notebooks for grade in notebook.grades if grade.name == "question_query_key"]
    grade.manual_score, grade.needs_manual_grade = 4.5, False
    book.db.commit()
PYTHON

"$python" - "$course" <<'PYTHON'
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

(wheel,) = Path(sys.argv[1]).glob("student/*/*.whl")
with ZipFile(wheel) as archive:
    kept = [
        (info, archive.read(info))
        for info in archive.infolist()
        if info.file_size < 40_000 or not info.filename.endswith(".safetensors")
    ]
with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
    for info, data in kept:
        archive.writestr(info, data)
PYTHON

tar --create --xz --file "$here/version-0.2.0.tar.xz" --sort=name --owner=0 --group=0 --mtime=2026-11-23 \
    --exclude=feedback --exclude="*.zip" --exclude=__pycache__ --directory "$course" .
