"""The composition root: settings, store, model and application are put together here, and only here."""

from pipeline.app.batches import batches as batches
from pipeline.app.batches import cancel as cancel
from pipeline.app.batches import possibly_billed as possibly_billed
from pipeline.app.course import lessons as lessons
from pipeline.app.course import redo as redo
from pipeline.app.course import resume as resume
from pipeline.app.gates import answer as answer
from pipeline.app.gates import gates as gates
from pipeline.app.mark_done import mark_done as mark_done
from pipeline.app.plan import Plan as Plan
from pipeline.app.plan import plan as plan
from pipeline.app.reconcile import days_to_reconcile as days_to_reconcile
from pipeline.app.reconcile import reconcile as reconcile
from pipeline.app.run_dot import run_dot as run_dot
from pipeline.app.run_file import run_file as run_file
from pipeline.app.settle import settle as settle
from pipeline.app.settle import settle_all as settle_all
from pipeline.app.settle import settle_shares as settle_shares
from pipeline.app.start import RunResult as RunResult
from pipeline.app.start import open_account as open_account
from pipeline.app.start import open_store as open_store
from pipeline.app.travel import fork as fork
from pipeline.app.travel import replay as replay
