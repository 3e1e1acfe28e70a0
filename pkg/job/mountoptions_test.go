package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMountOptionsAreShownWithoutSecrets(t *testing.T) {
	for have, want := range map[string]string{
		"hard":                        "hard",
		"vers=3.0,uid=1000,multiuser": "vers=3.0,uid=1000,multiuser",
		"password=S3CRET":             "password=***",
		"vers=3.0,username=sam,password=S3,,T,hard": "vers=3.0,username=***,password=***,hard",
		"hard,PASS=S3 CRET":                         "hard,PASS=***",
		"password2 = S3CRET":                        "password2 = ***",
		"--tmp-path=/tmp -o accountKey=S3CRET":      "--tmp-path=/tmp -o accountKey=***",
		"--account-key S3CRET,ro":                   "--account-key ***,ro",
		"sasToken=?sv=2020&sig=S3CRET":              "sasToken=***",
	} {
		assert.Equal(t, []string{want}, withoutSecrets([]string{have}))
	}
	assert.Nil(t, withoutSecrets(nil))
}

func TestMountOptionsCanForbidToWrite(t *testing.T) {
	assert.True(t, mountedReadOnly([]string{"hard", "vers=3.0,ro"}))
	assert.False(t, mountedReadOnly([]string{"hard", "rootmode=1", "errors=remount-ro"}))
}
