package v1

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// MaxName is the maximum length of the name of a person or group. The name must fit into the value of a label.
const MaxName = 63

var (
	named  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	simple = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// coded is the prefix of the object name for a person or group whose name can't be an object name.
const coded = "x-"

// ValidName reports whether a text can be the name of a person or a group.
func ValidName(name string) bool { return named.MatchString(name) }

// ObjectName returns the name of the User or Group object for the name of a person or group. Different names have different object names.
func ObjectName(name string) string {
	if simple.MatchString(name) && !strings.HasPrefix(name, coded) {
		return name
	}
	return coded + hex.EncodeToString([]byte(name))
}

// NameOf returns the name of the person or group to which an object belongs. It returns false if the object can't belong to a person or group.
func NameOf(object string) (string, bool) {
	name := object
	if text, isCoded := strings.CutPrefix(object, coded); isCoded {
		b, err := hex.DecodeString(text)
		if err != nil {
			return "", false
		}
		name = string(b)
	}
	return name, ValidName(name) && ObjectName(name) == object
}

// FoldName returns the form of a name that must be unique, because file systems of storages may ignore case.
func FoldName(name string) string { return strings.ToLower(name) }

var (
	// reserved holds names that have another meaning in paths, or that denote the platform and its operators.
	reserved = []string{"me", "pai", "application", "default", "administrator", "operator", "system", "anonymous", "nobody", "everyone"}
	// powerful holds names that people take for an administrator's name, and names of accounts on machines whose users submit jobs with a
	// kubeconfig.
	powerful = []string{"root", "admin", "administrators", "operators", "superuser", "sysadmin", "security", "support", "daemon", "bin", "sys", "ubuntu", "debian",
		"centos", "rocky", "almalinux", "fedora", "core", "ec2-user", "cloud-user", "azureuser", "opc", "vagrant", "kubernetes", "kubernetes-admin", "kube", "paictl", "openpai"}
)

// Reserved reports whether a name can't be the name of a person.
func Reserved(name string) bool {
	return slices.Contains(reserved, FoldName(name)) || strings.HasPrefix(FoldName(name), "system:")
}

// Powerful reports whether only an administrator may give a name to a person.
func Powerful(name string) bool { return slices.Contains(powerful, FoldName(name)) }

// The groups that always exist.
const (
	// GroupDefault contains the people who are added without groups.
	GroupDefault = "default"
	// GroupAdministrators contains the first administrator.
	GroupAdministrators = "administrators"
)
