package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// dataPath matches the paths of folders that may contain the volumes of services or the database of etcd.
var dataPath = regexp.MustCompile(`^(/[A-Za-z0-9_@%+=,-][A-Za-z0-9._@%+=,-]*)+/?$`)

// systemFolders lists folders of the operating system. System folders can't be used for data, but their subfolders can.
var systemFolders = []string{
	"/home", "/media", "/mnt", "/opt", "/root", "/srv", "/usr", "/usr/local", "/usr/share", "/usr/src", "/var", "/var/cache", "/var/lib", "/var/log", "/var/opt", "/var/spool",
}

// foreignFolders lists folders that can't be used for data, including their subfolders. These folders contain programs, settings or the state of
// other programs, or are emptied when the machine starts.
var foreignFolders = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/sbin",
	"/var/lib/apt", "/var/lib/cni", "/var/lib/containerd", "/var/lib/docker", "/var/lib/dpkg", "/var/lib/kubelet", "/var/lib/paictl", "/var/lib/systemd", "/var/run", "/var/tmp",
}

// badDataFolder returns the reason why a folder can't be used for data, or "". A wrong folder is dangerous, because "cluster up" fills the folder and
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

// within reports whether the path p is the given folder or is inside this folder. p must be clean.
func within(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

// UsableDataPath reports whether a folder may contain volumes. If it returns false, BadDataFolder already reports the path.
func UsableDataPath(dir string) bool { return badDataFolder(dir) == "" }

// BadEtcdFolder returns the reason why etcd-data-path can't be used for etcd's data, and the remedy. It returns "" if the path is valid.
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

// BadDataFolder returns the reason why cluster.common.data-path can't be used for the volumes of services, and the remedy. It returns "" if the
// path is valid.
func (c *Cluster) BadDataFolder() (message, remedy string) {
	if message = badDataFolder(c.Services.Cluster.Common.DataPath); message == "" {
		return "", ""
	}
	return message, dataFolderRemedy + defaultDataPath
}
