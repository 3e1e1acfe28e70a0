package target_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/cluster/backup/target/targettest"
	"github.com/openpai/paictl/pkg/hint"
)

func env(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

func onS3(t *testing.T) kept {
	t.Helper()
	g := targettest.S3(t)
	k := open(t, "s3://backups/of/pai", "", target.Options{S3: g.S3})
	k.names = func(t *testing.T) []string { return g.Names(t, "of/pai/") }
	return k
}

func TestABucketMayBeTheWholePlace(t *testing.T) {
	g := targettest.S3(t)
	k := open(t, "s3://backups", "", target.Options{S3: g.S3})
	_, err := k.Write(t.Context(), backup.Name("pai", at), text("x"))
	require.NoError(t, err)
	_, err = open(t, "s3://backups/deeper", "", target.Options{S3: g.S3}).Write(t.Context(), backup.Name("pai", at), text("y"))
	require.NoError(t, err)
	assert.Len(t, backups(t, k), 1, "what lies deeper is another place")
	assert.Equal(t, "x", read(t, k, backup.Name("pai", at)))
}

func TestAnUploadToS3ThatWasKilledIsEndedByTheNext(t *testing.T) {
	g := targettest.S3(t)
	core := minio.Core{Client: g.Raw}
	for _, key := range []string{"pai/" + backup.Name("pai", at), "pai/notes.txt"} {
		id, err := core.NewMultipartUpload(t.Context(), "backups", key, minio.PutObjectOptions{})
		require.NoError(t, err)
		_, err = core.PutObjectPart(t.Context(), "backups", key, id, 1, bytes.NewReader(make([]byte, 5<<20)), 5<<20, minio.PutObjectPartOptions{})
		require.NoError(t, err)
	}
	k := open(t, "s3://backups/pai", "", target.Options{S3: g.S3})
	_, err := k.Write(t.Context(), backup.Name("pai", at.Add(time.Hour)), text("x"))
	require.NoError(t, err)
	assert.Len(t, g.Names(t, "pai/"), 3, "another one may be writing it")

	// The server determines the start of an upload by the times of its files.
	old := time.Now().Add(-26 * time.Hour)
	require.NoError(t, filepath.WalkDir(g.Dir+"/backups/.sgwtmp", func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	}))
	_, err = k.Write(t.Context(), backup.Name("pai", at.Add(2*time.Hour)), text("x"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{backup.Name("pai", at.Add(time.Hour)), backup.Name("pai", at.Add(2*time.Hour)), "unfinished pai/notes.txt"}, g.Names(t, "pai/"))
}

func TestWhatS3RefusesIsToldWithARemedy(t *testing.T) {
	g := targettest.S3(t)
	creds := func(key, secret string) func(string) string {
		return env(map[string]string{"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "HOME": t.TempDir()})
	}
	closed := "https://127.0.0.1:1"
	for name, c := range map[string]struct {
		place, says, remedy string
		change              func(s *target.S3)
	}{
		"no bucket":            {"s3://nothing", "has no bucket nothing", "create the bucket", func(*target.S3) {}},
		"an unknown key":       {"s3://backups", "refuses the credentials", "AWS_ACCESS_KEY_ID", func(s *target.S3) { s.Getenv = creds("AKIAOTHER", targettest.SecretKey) }},
		"another secret":       {"s3://backups", "refuses the credentials", "AWS_ACCESS_KEY_ID", func(s *target.S3) { s.Getenv = creds(targettest.AccessKey, "hunter3") }},
		"no credentials":       {"s3://backups", "no credentials", "AWS_ACCESS_KEY_ID", func(s *target.S3) { s.Getenv = creds("", "") }},
		"half of them":         {"s3://backups", "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", func(s *target.S3) { s.Getenv = creds(targettest.AccessKey, "") }},
		"an unknown authority": {"s3://backups", "certificate", "--s3-ca", func(s *target.S3) { s.CA = "" }},
		"no one listens":       {"s3://backups", "refused", "--s3-endpoint", func(s *target.S3) { s.Endpoint = closed }},
		"another region":       {"s3://backups", "us-east-1", "--s3-region", func(s *target.S3) { s.Region = "eu-west-9" }},
	} {
		t.Run(name, func(t *testing.T) {
			o := g.S3
			c.change(&o)
			to, err := target.Open(c.place, target.Options{S3: o})
			require.NoError(t, err)
			_, err = to.Write(t.Context(), backup.Name("pai", at), func(context.Context, io.Writer) error {
				t.Error("the backup was begun")
				return nil
			})
			require.ErrorContains(t, err, c.says)
			assert.Contains(t, hint.Of(err), c.remedy)
			assert.NotContains(t, err.Error()+hint.Of(err), "hunter")
			_, err = to.List(t.Context(), "")
			require.ErrorContains(t, err, c.says)
			_, _, err = to.Open(t.Context(), backup.Name("pai", at))
			require.Error(t, err)
		})
	}
	assert.Empty(t, g.Names(t, ""))
}

func TestCredentialsOfS3AreWhereTheAWSToolsHaveThem(t *testing.T) {
	g := targettest.S3(t)
	home := t.TempDir()
	require.NoError(t, os.Mkdir(home+"/.aws", 0o700))
	file := "[default]\naws_access_key_id = AKIAOTHER\naws_secret_access_key = x\n[backups]\naws_access_key_id = " + targettest.AccessKey + "\naws_secret_access_key = " + targettest.SecretKey + "\n"
	require.NoError(t, os.WriteFile(home+"/.aws/credentials", []byte(file), 0o600))
	require.NoError(t, os.WriteFile(home+"/elsewhere", []byte("[default]\naws_access_key_id = "+targettest.AccessKey+"\naws_secret_access_key = "+targettest.SecretKey+"\n"), 0o600))
	require.NoError(t, os.WriteFile(home+"/broken", []byte("[default\naws_secret_access_key = "+targettest.SecretKey+"\n"), 0o600))
	list := func(vars map[string]string) error {
		o := g.S3
		o.Endpoint, vars["AWS_ENDPOINT_URL"] = "", g.S3.Endpoint
		o.Getenv = env(vars)
		to, err := target.Open("s3://backups", target.Options{S3: o})
		require.NoError(t, err)
		_, err = to.List(t.Context(), "")
		return err
	}
	require.NoError(t, list(map[string]string{"HOME": home, "AWS_PROFILE": "backups"}))
	require.NoError(t, list(map[string]string{"AWS_SHARED_CREDENTIALS_FILE": home + "/elsewhere"}))
	require.ErrorContains(t, list(map[string]string{"HOME": home}), "refuses the credentials")
	require.ErrorContains(t, list(map[string]string{"HOME": home, "AWS_PROFILE": "none"}), "no credentials")
	err := list(map[string]string{"AWS_SHARED_CREDENTIALS_FILE": home + "/broken"})
	require.ErrorContains(t, err, "broken can't be read")
	assert.NotContains(t, err.Error()+hint.Of(err), "hunter")
}

func TestAnEndpointOfS3IsCheckedBeforeItIsAsked(t *testing.T) {
	for endpoint, says := range map[string]string{
		"http://s3.example.org":          "isn't encrypted",
		"http://127.0.0.2.example.org":   "isn't encrypted",
		"https://key:hunter2@s3.example": "has credentials",
		"s3.example.org":                 "is not a URL",
		"ftp://s3.example.org":           "is not a URL",
		"https://s3.example.org/path":    "is not a URL",
		"https://\x7f":                   "is not a URL",
	} {
		_, err := target.Open("s3://backups", target.Options{S3: target.S3{Endpoint: endpoint, Getenv: env(nil)}})
		require.ErrorContains(t, err, says, endpoint)
		assert.NotEmpty(t, hint.Of(err))
		assert.NotContains(t, err.Error()+hint.Of(err), "hunter2")
	}
	for _, endpoint := range []string{"http://localhost:9000", "http://[::1]:9000/", "https://s3.example.org"} {
		_, err := target.Open("s3://backups", target.Options{S3: target.S3{Endpoint: endpoint, Getenv: env(nil)}})
		require.NoError(t, err, endpoint)
	}
	none := filepath.Join(t.TempDir(), "ca.crt")
	_, err := target.Open("s3://backups", target.Options{S3: target.S3{CA: none, Getenv: env(nil)}})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(none, []byte("no certificate"), 0o600))
	_, err = target.Open("s3://backups", target.Options{S3: target.S3{CA: none, Getenv: env(nil)}})
	require.ErrorContains(t, err, "has no certificate")
}
