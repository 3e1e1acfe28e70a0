package v1

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// MaxName is the maximum length of the name of a person or group, because it is a label value.
const MaxName = 63

var (
	named  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	simple = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// coded is the prefix of the names of objects for people or groups whose names aren't valid for objects.
const coded = "x-"

// ValidName reports whether a person or a group may have a name.
func ValidName(name string) bool { return named.MatchString(name) }

// ObjectName returns the name in Kubernetes of a User or a Group. Different names have different object names.
func ObjectName(name string) string {
	if simple.MatchString(name) && !strings.HasPrefix(name, coded) {
		return name
	}
	return coded + hex.EncodeToString([]byte(name))
}

// NameOf returns the name of the person or group of an object. It returns false if the object can't belong to a person or group.
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

// FoldName returns the form of a name that must be unique: folders of storages may not be case-sensitive.
func FoldName(name string) string { return strings.ToLower(name) }

var (
	// reserved are names that have another meaning in paths, or mean the platform and its operators.
	reserved = []string{"me", "pai", "application", "default", "administrator", "operator", "system", "anonymous", "nobody", "everyone"}
	// powerful are names that people take for an administrator's, and accounts of machines, whose users submit jobs with a kubeconfig.
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
	// GroupDefault holds the people who are added without groups.
	GroupDefault = "default"
	// GroupAdministrators holds the first administrator.
	GroupAdministrators = "administrators"
)
