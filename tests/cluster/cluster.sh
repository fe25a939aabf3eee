#!/usr/bin/env bash
# A real Slurm of three nodes on one machine, for the tests of this folder.
#   tests/cluster/cluster.sh install    as root on a Debian-like system; else says why not, and goes on
#   tests/cluster/cluster.sh up|down    its state is below $TRIAX_TEST_CLUSTER (/tmp/triax-cluster)
# Each node is a slurmd in a network and a UTS namespace of its own, so that nodes have addresses
# and names (jax.distributed needs both) and a link that can be cut. Partition main preempts
# scavenge by requeueing. The processors, the memory and the GPUs of the nodes are claimed, not
# there: enough for what the scripts in slurm/ ask for.
set -euo pipefail
root=${TRIAX_TEST_CLUSTER:-/tmp/triax-cluster}
nodes=3
net=10.77.0
packages=(slurmctld slurmd slurm-client munge shellcheck iproute2)

installed() {
  local program
  for program in slurmctld slurmd sbatch munged shellcheck ip; do
    command -v "$program" >/dev/null || return 1
  done
}

install_packages() {
  if installed; then return 0; fi
  if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "Slurm is not installed, and only root on a Debian-like system can install it here;" \
      "the tests of tests/cluster/ are skipped" >&2
    return 0
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends "${packages[@]}" >/dev/null
}

down() {
  local file pid waited
  for file in "$root"/slurmd.*.pid "$root"/slurmctld.pid "$root"/munge/munged.pid; do
    if [[ -s $file ]]; then
      pid=$(<"$file")
      kill "$pid" 2>/dev/null || continue
      for ((waited = 0; waited < 50; waited++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
      done
      kill -9 "$pid" 2>/dev/null || true
    fi
  done
  # Steps that outlived their slurmd; they were started with the path of this configuration.
  pkill -9 -f "slurmstepd: \[" 2>/dev/null || true
  # The link first: a namespace goes away asynchronously.
  for ((i = 1; i <= nodes; i++)); do
    ip link del "triax$i" 2>/dev/null || true
    ip netns del "triax$i" 2>/dev/null || true
  done
  ip link del triax0 2>/dev/null || true
  # Written in place: /etc/hosts may be mounted, and cannot be renamed over then.
  local hosts
  hosts=$(sed '/# triax-cluster$/d' /etc/hosts)
  printf '%s\n' "$hosts" >/etc/hosts
}

start_munge() {
  # A key and a socket of our own, so that no service of the system is needed or touched.
  install -d -o munge -g munge -m 0755 "$root/munge"
  head -c 128 /dev/urandom >"$root/munge/munge.key"
  chown munge: "$root/munge/munge.key"
  chmod 400 "$root/munge/munge.key"
  setpriv --reuid munge --regid munge --clear-groups "$(command -v munged)" --force \
    --key-file="$root/munge/munge.key" --socket="$root/munge/munge.socket" \
    --pid-file="$root/munge/munged.pid" --seed-file="$root/munge/seed" \
    --log-file="$root/munge/munged.log"
}

make_network() {
  ip link add triax0 type bridge
  ip addr add "$net.1/24" dev triax0
  ip link set triax0 up
  for ((i = 1; i <= nodes; i++)); do
    ip netns add "triax$i"
    ip link add "triax$i" type veth peer name eth0 netns "triax$i"
    ip link set "triax$i" master triax0 up
    ip -n "triax$i" addr add "$net.$((10 + i))/24" dev eth0
    ip -n "triax$i" link set eth0 up
    ip -n "triax$i" link set lo up
    ip -n "triax$i" route add default via "$net.1"
    echo "$net.$((10 + i)) n$i # triax-cluster" >>/etc/hosts
  done
}

write_configuration() {
  cat >"$root/slurm.conf" <<CONF
ClusterName=triax
SlurmctldHost=$(hostname -s)($net.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$root/munge/munge.socket
CredType=cred/munge
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool.%n
SlurmctldPidFile=$root/slurmctld.pid
SlurmdPidFile=$root/slurmd.%n.pid
SlurmctldLogFile=$root/log/slurmctld.log
SlurmdLogFile=$root/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout=10
TCPTimeout=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
SlurmdParameters=config_overrides
JobRequeue=1
MinJobAge=3600
KillWait=3
MessageTimeout=30
GresTypes=gpu
JobCompType=jobcomp/filetxt
JobCompLoc=$root/log/jobcomp.txt
AccountingStorageType=accounting_storage/none
CONF
  : >"$root/gres.conf"
  # File= must name device nodes: with Count= alone 22.05 reports no GPUs.
  for ((g = 0; g < 4; g++)); do mknod -m 666 "$root/gpu$g" c 1 3; done
  for ((i = 1; i <= nodes; i++)); do
    mkdir -p "$root/spool.n$i"
    echo "NodeName=n$i NodeHostname=n$i NodeAddr=$net.$((10 + i)) Port=16818 CPUs=32 Boards=1" \
      "SocketsPerBoard=1 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=512000" \
      "Gres=gpu:4 State=UNKNOWN" >>"$root/slurm.conf"
    echo "NodeName=n$i Name=gpu File=$root/gpu[0-3]" >>"$root/gres.conf"
  done
  cat >>"$root/slurm.conf" <<CONF
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=off
PartitionName=scavenge Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=requeue GraceTime=30
CONF
}

up() {
  down
  rm -rf "$root"
  mkdir -p "$root/state" "$root/log"
  chmod 755 "$root"
  start_munge
  make_network
  write_configuration
  export SLURM_CONF="$root/slurm.conf"
  slurmctld -c
  for ((i = 1; i <= nodes; i++)); do
    # Not `ip netns exec`: it mounts /sys anew and hides the cgroups that slurmd wants to see.
    nsenter --net="/run/netns/triax$i" unshare --uts sh -c "hostname n$i; exec slurmd -N n$i"
  done
  for ((waited = 0; waited < 300; waited++)); do
    if [[ $(sinfo -h -t idle -o %D -p main 2>/dev/null) == "$nodes" ]]; then
      echo "export SLURM_CONF=$SLURM_CONF"
      return 0
    fi
    sleep 0.1
  done
  echo "the cluster did not come up" >&2
  sinfo -N -l >&2 || true
  tail -n 20 "$root/log/slurmctld.log" >&2
  return 1
}

case "${1:-}" in
  install) install_packages ;;
  up) up ;;
  down) down ;;
  *)
    echo "usage: $0 install|up|down" >&2
    exit 2
    ;;
esac
