{{/* cluster-backup.credentials: the Secret with the keys: paictl's, or the chart's own. */}}
{{- define "cluster-backup.credentials" -}}
{{- .Values.credentialsSecret | default (printf "%s-credentials" (include "pai.name" .)) -}}
{{- end -}}

{{/* cluster-backup.config: the program's settings, without the keys. */}}
{{- define "cluster-backup.config" -}}
{{- if not .Values.to -}}
{{- fail "to: set where backups are stored: ssh://USER@HOST/FOLDER or s3://BUCKET/PREFIX" -}}
{{- end -}}
{{- if not .Values.recipients -}}
{{- fail "recipients: add a public key of age, to which backups are encrypted; age-keygen creates a key pair" -}}
{{- end -}}
{{- dict "to" .Values.to "recipients" .Values.recipients "prune" .Values.prune "keep" .Values.keep
      "s3" (pick .Values.s3 "endpoint" "region" "ca" "accessKeyId") "ssh" (pick .Values.ssh "knownHosts") | toJson -}}
{{- end -}}

{{/* cluster-backup.jobs: the address of the job controller, as in the default of its chart. */}}
{{- define "cluster-backup.jobs" -}}
http://job-controller.{{ .Release.Namespace }}.svc:9097
{{- end -}}
