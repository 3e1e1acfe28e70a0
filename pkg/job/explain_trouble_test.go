package job

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job/api"
)

// The messages come from kubelets, from mount and its programs for NFS and SMB, and from CSI drivers.
func TestAVolumeThatCannotBeMountedHasTheRemedyOfItsCause(t *testing.T) {
	failed := func(kind, output string) string {
		return `MountVolume.SetUp failed for volume "team" : mount failed: exit status 32 Mounting command: mount Mounting arguments: -t ` + kind +
			` -o hard,vers=4.2 10.0.0.9:/exports/team /var/lib/kubelet/pods/6a1ffb0c-9d52-4b5e-9d6f-0c6a8e3f0f11/volumes/kubernetes.io~nfs/team Output: ` + output
	}
	for message, want := range map[string]string{
		failed("nfs", "mount.nfs: access denied by server while mounting 10.0.0.9:/exports/team"):                                                            "refuses this machine",
		failed("nfs", "mount.nfs: mounting 10.0.0.9:/exports/team failed, reason given by server: No such file or directory"):                                "a folder or an export",
		failed("nfs", "mount: /mnt: unknown filesystem type 'nfs'."):                                                                                         "nfs-common",
		failed("nfs", "mount.nfs: rpc.statd is not running but is required for remote locking. Either use '-o nolock' to keep locks local, or start statd."): "rpc.statd",
		failed("nfs", "mount.nfs: an incorrect mount option was specified"):                                                                                  "mountOptions",
		failed("nfs", "mount.nfs: requested NFS version or transport protocol is not supported"):                                                             "mountOptions",
		failed("nfs", "mount.nfs: clnt_create: RPC: Program not registered"):                                                                                 "can't reach the server",
		failed("nfs", "mount.nfs: Connection timed out"):                                                                                                     "can't reach the server",
		failed("cifs", "mount error(13): Permission denied Refer to the mount.cifs(8) manual page (e.g. man mount.cifs)"):                                    "refuses this machine, or its login",
		failed("cifs", "mount error(126): Required key not available"):                                                                                       "refuses this machine, or its login",
		failed("cifs", "mount error(2): No such file or directory"):                                                                                          "a folder or an export",
		failed("cifs", "mount error(112): Host is down"):                                                                                                     "can't reach the server",
		failed("cifs", "mount error(95): Operation not supported"):                                                                                           "mountOptions",
		failed("cifs", "mount error(22): Invalid argument"):                                                                                                  "mountOptions",
		failed("cifs", "mount: /mnt: cannot mount //10.0.0.9/team read-only."):                                                                               "cifs-utils",
		`MountVolume.MountDevice failed for volume "team" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name file.csi.azure.com not found in the list of registered CSI drivers`:                       "the CSI driver of the storage doesn't run",
		`MountVolume.MountDevice failed for volume "team" : fetching NodeStageSecretRef pai-jobs/smb-login failed: kubernetes.io/csi: failed to find the secret smb-login in the namespace pai-jobs with error: secrets "smb-login" not found`: "the Secret with the login of the storage",
		`MountVolume.SetUp failed for volume "pai-spec" : secret "b9d8e11f-spec" not found`:                 "stop the job and submit it again",
		`MountVolume.SetUp failed for volume "disk" : hostPath type check failed: /data is not a directory`: "a folder or an export",
		`MountVolume.NewMounter initialization failed for volume "disk" : path "/data/team" does not exist`: "a folder or an export",
	} {
		text, remedy := eventTrouble(&api.Event{Reason: "FailedMount", Message: message})
		assert.Contains(t, text, "waits for a volume: ", message)
		assert.LessOrEqual(t, len([]rune(text)), 325, message)
		if assert.Len(t, remedy, 1, message) {
			assert.Contains(t, remedy[0], want, message)
		}
	}
	text, _ := eventTrouble(&api.Event{Reason: "FailedMount", Message: failed("nfs", "mount.nfs: access denied by server while mounting 10.0.0.9:/exports/team")})
	assert.Contains(t, text, "access denied by server", "the cause is at the end")
}

func TestAnImageForOtherProcessorsIsNotMissing(t *testing.T) {
	text, _ := pullTrouble(`failed to pull and unpack image "docker.io/library/a:1": no match for platform in manifest sha256:0123: not found`)
	assert.Equal(t, "the image isn't built for the processors of its machine", text)
}
