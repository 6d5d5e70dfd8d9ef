#!/usr/bin/env bash
# Two soft-RoCE devices, rxa and rxb, on the two ends of a virtual cable, va and vb: `soft_roce_pair.sh make`; `down` and
# `up` take the end of rxa down and bring it back; `hold` and `release` keep back what rxa sends and let it go. An MTU of
# 4200 carries RDMA packets of 4096 bytes.
#
# Both ends are in one network namespace, so that the kernel must be told to take packets from its own addresses off a
# cable, and whom to find at the other end; with IPv6 also, that what leaves one end for the other goes over the cable.
set -euo pipefail

give_addresses() {
  local mac_a mac_b
  mac_a=$(</sys/class/net/va/address) mac_b=$(</sys/class/net/vb/address)
  ip addr replace 10.77.0.1/24 dev va
  ip addr replace 10.77.0.2/24 dev vb
  ip -6 addr replace fd77::1/64 dev va nodad
  ip -6 addr replace fd77::2/64 dev vb nodad
  ip neigh replace fd77::2 lladdr "$mac_b" dev va nud permanent
  ip neigh replace fd77::1 lladdr "$mac_a" dev vb nud permanent
  ip -6 route replace fd77::2/128 dev va table 101
  ip -6 route replace fd77::1/128 dev vb table 102
  ip neigh replace 10.77.0.2 lladdr "$mac_b" dev va nud permanent
  ip neigh replace 10.77.0.1 lladdr "$mac_a" dev vb nud permanent
}

case ${1:-} in
  make)
    ip link add va type veth peer name vb
    for device in va vb; do
      ip link set "$device" mtu 4200 up
    done
    for device in va vb all; do
      echo 1 >"/proc/sys/net/ipv4/conf/$device/accept_local"
      echo 0 >"/proc/sys/net/ipv4/conf/$device/rp_filter"
    done
    give_addresses
    ip -6 rule add pref 1 oif va lookup 101
    ip -6 rule add pref 2 oif vb lookup 102
    ip -6 rule add pref 3 lookup local
    ip -6 rule del pref 0
    rdma link add rxa type rxe netdev va
    rdma link add rxb type rxe netdev vb
    ;;
  down) ip link set va down ;;
  up)
    ip link set va up
    give_addresses
    ;;
  hold)
    tc qdisc del dev va root 2>/dev/null || true
    tc qdisc add dev va root plug limit 8000000
    ;;
  release) tc qdisc change dev va root plug release_indefinite ;;
  *)
    echo "usage: soft_roce_pair.sh make|down|up|hold|release" >&2
    exit 2
    ;;
esac
