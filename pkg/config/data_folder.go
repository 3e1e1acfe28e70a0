package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// dataPath matches the folders that may hold the volumes of services, or etcd's database.
var dataPath = regexp.MustCompile(`^(/[A-Za-z0-9_@%+=,-][A-Za-z0-9._@%+=,-]*)+/?$`)

// systemFolders belong to the machine, but may contain a folder with data.
var systemFolders = []string{
	"/home", "/media", "/mnt", "/opt", "/root", "/srv", "/usr", "/usr/local", "/usr/share", "/usr/src", "/var", "/var/cache", "/var/lib", "/var/log", "/var/opt", "/var/spool",
}

// foreignFolders may not even contain a folder with data: they hold programs, settings or the state of another program, or are emptied when the
// machine starts.
var foreignFolders = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/sbin",
	"/var/lib/apt", "/var/lib/cni", "/var/lib/containerd", "/var/lib/docker", "/var/lib/dpkg", "/var/lib/kubelet", "/var/lib/paictl", "/var/lib/systemd", "/var/run", "/var/tmp",
}

// badDataFolder returns the reason why a folder can't be used for data, or "". "cluster up" fills such a folder and
// "cluster down" erases it.
func badDataFolder(p string) string {
	if !dataPath.MatchString(p) {
		return fmt.Sprintf("%q is not an absolute path of a folder", p)
	}
	p = path.Clean(p)
	if slices.Contains(systemFolders, p) {
		return p + " belongs to the machine"
	}
	for _, f := range foreignFolders {
		if within(p, f) {
			return p + " belongs to the machine or to another program"
		}
	}
	return ""
}

const dataFolderRemedy = "choose a separate folder of letters, digits and _@%+=,.-, such as the default "

// within reports whether a clean path is a folder or below it.
func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

// UsableDataPath reports whether a folder may hold volumes. If it returns false, paths below the folder need no separate error.
func UsableDataPath(dir string) bool { return badDataFolder(dir) == "" }

// BadEtcdFolder returns the reason why etcd can't have its data in etcd-data-path and the remedy, or "".
func (c *Cluster) BadEtcdFolder() (message, remedy string) {
	p := c.Kubernetes.Kubernetes.EtcdDataPath
	if message = badDataFolder(p); message != "" {
		return message, dataFolderRemedy + defaultEtcdPath
	}
	if data := c.Services.Cluster.Common.DataPath; within(path.Clean(data), path.Clean(p)) {
		return fmt.Sprintf("%s contains the data of services: cluster.common.data-path is %s", p, data), "choose separate folders; the defaults are " + defaultEtcdPath + " and " + defaultDataPath
	}
	return "", ""
}

// BadDataFolder returns the reason why services can't have their volumes in cluster.common.data-path and the remedy, or "".
func (c *Cluster) BadDataFolder() (message, remedy string) {
	if message = badDataFolder(c.Services.Cluster.Common.DataPath); message == "" {
		return "", ""
	}
	return message, dataFolderRemedy + defaultDataPath
}
