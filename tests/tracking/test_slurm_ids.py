from triax.tracking.slurm_ids import array_id, slurm_ids

# As Slurm sets them in the third task of an array, after one requeue.
TASK = {
    "SLURM_JOB_ID": "73",
    "SLURM_ARRAY_JOB_ID": "70",
    "SLURM_ARRAY_TASK_ID": "2",
    "SLURM_ARRAY_TASK_COUNT": "4",
    "SLURM_RESTART_COUNT": "1",
    "SLURMD_NODENAME": "n2",
    "SLURM_CONF": "/etc/slurm/slurm.conf",
    "SLURM_JOB_NAME": "",
}


def test_a_task_of_an_array_says_which_one_it_is():
    assert slurm_ids(TASK) == {
        "slurm_job_id": "73",
        "slurm_array_job_id": "70",
        "slurm_array_task_id": "2",
        "slurm_restart_count": "1",
        "slurmd_nodename": "n2",
    }
    assert array_id(TASK) == "70"


def test_outside_of_slurm_there_is_nothing(monkeypatch):
    assert slurm_ids({"HOME": "/"}) == {} and array_id({}) is None
    for name in TASK:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    assert slurm_ids() == {"slurm_job_id": "8"} and array_id() is None
