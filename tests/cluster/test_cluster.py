"""The test cluster itself: without it none of the others say anything."""


def test_two_tasks_on_two_nodes_with_names_of_their_own(cluster):
    found = cluster.call("srun", "-N2", "-n2", "--mem=100", "hostname").split()
    assert len(set(found)) == 2 and set(found) <= set(cluster.nodes)


def test_a_job_ends_with_the_exit_code_of_its_script(cluster, tmp_path):
    script = tmp_path / "seven.sbatch"
    script.write_text("#!/bin/bash\nhostname\nexit 7\n")
    job = cluster.submit(script, folder=tmp_path)
    assert cluster.wait(job) == ["FAILED"]
    assert cluster.jobs(job)[0]["ExitCode"] == "7:0"
    assert (tmp_path / f"seven.sbatch-{job}.out").read_text().strip() in cluster.nodes
