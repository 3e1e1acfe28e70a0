package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	// etcdQuota is etcd's default limit for the size of its database, in bytes. Beyond this size, etcd rejects writes.
	etcdQuota = 2 << 30
	// backupAge is the maximum age of the newest copy of etcd's database, if any copy exists.
	backupAge = 3 * 24 * time.Hour
)

func etcdChecks() []*Check {
	return []*Check{
		{
			ID: "etcd-members", Group: "kubernetes", Title: "etcd has all its members, and a majority agrees", Needs: Machines,
			Examines: "the list of members of each master's etcd, compared with the masters of layout.yaml",
			Run:      etcdMembers,
		},
		{
			ID: "etcd-health", Group: "kubernetes", Title: "etcd has a leader and no alarms", Needs: Machines,
			Examines: "leader, errors and alarms (NOSPACE, CORRUPT) of each member",
			Run:      etcdHealth,
		},
		{
			ID: "etcd-size", Group: "kubernetes", Title: "etcd's database has free space", Needs: Machines,
			Examines: "the size of each member's database, compared with its quota of 2 GiB or the configured one: a warning from 70 %, a problem from 90 %; and how much of it is free after deletions",
			Run:      etcdSize,
		},
		{
			ID: "etcd-backup", Group: "kubernetes", Title: "The last backup is recent", Needs: Machines,
			Examines: "the time of the last paictl cluster backup, and the newest *.db in /var/lib/etcd-backup, /var/backups/etcd, /var/lib/paictl/etcd-backup and /opt/etcd-backup of masters: a warning if it is older than three days. If there is neither, the check only says so",
			Run:      etcdBackup,
		},
	}
}

func (c *Cluster) masters() []*machine {
	return slices.DeleteFunc(c.machines(), func(m *machine) bool { return !m.ControlPlane || !c.joined(m.Hostname) })
}

const noEtcd = "these machines don't run etcd: it runs elsewhere, or no master answers"

func etcdMembers(_ context.Context, c *Cluster) (out []Finding, _ error) {
	masters := c.masters()
	if len(masters) == 0 {
		return skip(noEtcd), nil
	}
	var best *cluster.EtcdView
	for _, m := range masters {
		if m.Etcd == nil {
			out = append(out, problem(m.Hostname, fmt.Sprintf("on the machine: crictl ps -a | grep etcd, then crictl logs CONTAINER; if its data is lost: paictl node remove %s, then paictl node add", m.Hostname),
				"its etcd doesn't answer"))
			continue
		}
		if best == nil || m.Etcd.Quorum && !best.Quorum {
			best = m.Etcd
		}
	}
	if best == nil {
		return out, nil
	}
	if !best.Quorum {
		out = append(out, problem("", "start masters that are off, with their disks; if they are lost permanently: docs/cluster.md says how a cluster continues from one member",
			"etcd has lost its quorum: too few of %s agree, and nothing can be written", plural.Of(len(best.Members), "member")))
	}
	for _, n := range c.Spec.ControlPlane() {
		at := slices.IndexFunc(best.Members, func(e cluster.EtcdMember) bool { return isMember(e, n) })
		switch {
		case at < 0 && c.joined(n.Hostname):
			out = append(out, problem(n.Hostname, fmt.Sprintf("remove it and add it again: paictl node remove %s, then paictl node add %s=%s --role master", n.Hostname, n.Hostname, n.HostIP),
				"is a master, but not an etcd member: the next failure of a master may stop the cluster"))
		case at >= 0 && best.Members[at].Learner:
			out = append(out, warning(n.Hostname, "wait a few minutes; if this doesn't change: paictl cluster up --limit "+n.Hostname, "its etcd is a learner without a vote"))
		case at >= 0 && c.Inspection.Machines[n.Hostname] != nil && c.Inspection.Machines[n.Hostname].Err != nil:
			out = append(out, problem(n.Hostname, "repair the machine, or replace it: paictl node remove "+n.Hostname, "is an etcd member that doesn't answer: %d of %d members are left", len(best.Members)-c.away(best), len(best.Members)))
		}
	}
	for _, e := range best.Members {
		if !slices.ContainsFunc(c.Spec.ControlPlane(), func(n *engine.Node) bool { return isMember(e, n) }) {
			name := e.Name
			if name == "" {
				name = strings.Join(e.PeerURLs, ",")
			}
			out = append(out, problem("", "list the machine in layout.yaml with the role master; to remove it, then run paictl node remove "+shell.Word(name), "etcd has a member %s that is not a master of layout.yaml: it counts for the majority", name))
		}
	}
	if n := len(best.Members); best.Quorum && n == 2 {
		out = append(out, warning("", "have one master or three: paictl node add NAME=ADDRESS --role master", "etcd has two members: without either of them it stops"))
	}
	return out, nil
}

// away returns the number of etcd members whose machine or etcd doesn't respond.
func (c *Cluster) away(v *cluster.EtcdView) (away int) {
	for _, n := range c.Spec.ControlPlane() {
		l := c.Inspection.Machines[n.Hostname]
		if l != nil && (l.Err != nil || l.Etcd == nil) && slices.ContainsFunc(v.Members, func(e cluster.EtcdMember) bool { return isMember(e, n) }) {
			away++
		}
	}
	return away
}

func isMember(e cluster.EtcdMember, n *engine.Node) bool {
	return e.Name == n.Hostname || slices.ContainsFunc(e.PeerURLs, func(u string) bool {
		return strings.Contains(u, "//"+n.HostIP+":") || strings.Contains(u, "//["+n.HostIP+"]:")
	})
}

// etcdStatus is the status of an etcd member. Its JSON contains numbers as strings.
type etcdStatus struct {
	DBSize      string   `json:"dbSize"`
	DBSizeInUse string   `json:"dbSizeInUse"`
	DBSizeQuota string   `json:"dbSizeQuota"`
	Leader      string   `json:"leader"`
	Errors      []string `json:"errors"`
}

type etcdAlarms struct {
	Alarms []struct {
		MemberID string `json:"memberID"`
		Alarm    string `json:"alarm"`
	} `json:"alarms"`
}

func etcdHealth(_ context.Context, c *Cluster) (out []Finding, _ error) {
	asked := 0
	alarms := map[string]bool{}
	for _, m := range c.masters() {
		if m.Etcd == nil {
			continue // etcd-members reports it
		}
		asked++
		var s etcdStatus
		if err := json.Unmarshal(m.Etcd.Status, &s); err != nil {
			out = append(out, warning(m.Hostname, "on the machine: crictl logs of the container etcd", "its etcd doesn't report its status"))
			continue
		}
		if s.Leader == "" || s.Leader == "0" {
			out = append(out, problem(m.Hostname, "see whether the masters reach each other on port 2380, and how slow their disks are", "its etcd has no leader"))
		}
		var a etcdAlarms
		_ = json.Unmarshal(m.Etcd.Alarms, &a) // empty if it can't be read
		for _, one := range a.Alarms {
			alarms[one.Alarm] = true
		}
		for _, e := range s.Errors {
			if !strings.Contains(e, "alarm:") {
				out = append(out, problem(m.Hostname, "on the machine: crictl logs of the container etcd", "its etcd reports an error").seen(e))
			}
		}
	}
	for _, alarm := range sortedKeys(alarms) {
		remedy := "remove that member and add its machine again: paictl node remove, then paictl node add"
		if alarm == "NOSPACE" {
			remedy = "compact and defragment etcd, then etcdctl alarm disarm (docs/doctor.md#etcd-health)"
		}
		out = append(out, problem("", remedy, "etcd has the alarm %s", alarm))
	}
	if asked == 0 {
		return skip(noEtcd), nil
	}
	return out, nil
}

func etcdSize(_ context.Context, c *Cluster) (out []Finding, _ error) {
	asked := 0
	for _, m := range c.masters() {
		if m.Etcd == nil {
			continue
		}
		var s etcdStatus
		if json.Unmarshal(m.Etcd.Status, &s) != nil {
			continue
		}
		size, _ := strconv.ParseInt(s.DBSize, 10, 64)
		used, _ := strconv.ParseInt(s.DBSizeInUse, 10, 64)
		quota, _ := strconv.ParseInt(s.DBSizeQuota, 10, 64)
		if quota <= 0 {
			quota = etcdQuota
		}
		asked++
		verdict := OK
		switch {
		case size*100 >= quota*90:
			verdict = Problem
		case size*100 >= quota*70:
			verdict = Warning
		}
		if verdict == OK {
			continue
		}
		remedy := "see what fills it (kubectl get --raw /metrics | grep apiserver_storage_objects), or raise its quota (quota-backend-bytes)"
		if used*2 < size {
			remedy = "more than half of it is free: defragment it, one member after the other (docs/doctor.md#etcd-size)"
		}
		out = append(out, Finding{Where: m.Hostname, Verdict: verdict, Remedy: remedy,
			Message: fmt.Sprintf("etcd's database has %d MiB of %d, of which %d are in use: when it is full nothing can be written", size>>20, quota>>20, used>>20)})
	}
	if asked == 0 {
		return skip(noEtcd), nil
	}
	return out, nil
}

func etcdBackup(ctx context.Context, c *Cluster) ([]Finding, error) {
	masters := c.masters()
	if len(masters) == 0 {
		return skip(noEtcd), nil
	}
	var newest time.Time
	var where, path string
	for _, m := range masters {
		for _, row := range m.all("snapshot", 2) {
			at, err := strconv.ParseInt(row[1], 10, 64)
			if t := time.Unix(at, 0); err == nil && t.After(newest) {
				newest, where, path = t, m.Hostname, row[0]
			}
		}
	}
	if c.Kube != nil { // other checks report a failure of this request
		notes, err := c.Kube.Client.CoreV1().ConfigMaps(cluster.NotesNamespace).Get(ctx, cluster.NotesName, metav1.GetOptions{})
		if err == nil {
			if at, err := time.Parse(time.RFC3339, notes.Data[cluster.BackupNote]); err == nil && at.After(newest) {
				newest, where, path = at, "", "paictl cluster backup"
			}
		}
	}
	if newest.IsZero() {
		return []Finding{note("", "the cluster was never backed up: paictl cluster backup; if you keep copies of etcd's database elsewhere, ignore this (docs/doctor.md#etcd-backup)")}, nil
	}
	if age := c.Now().Sub(newest); age > backupAge {
		return []Finding{warning(where, "see why no newer one was made: the timer or job that makes them has stopped", "the last backup is %s old", plural.Of(int(age.Hours()/24), "day")).seen(path)}, nil
	}
	return nil, nil
}
