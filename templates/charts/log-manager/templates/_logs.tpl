{{/* log-manager.jobs: the namespace where jobs run. */}}
{{- define "log-manager.jobs" -}}pai-jobs{{- end -}}

{{/* log-manager.folder: the folder of logs on the machines. */}}
{{- define "log-manager.folder" -}}
{{- .Values.folder | default (printf "%s/log-manager" ((.Values.global | default dict).dataPath | default "/var/lib/openpai" | trimSuffix "/")) -}}
{{- end -}}
