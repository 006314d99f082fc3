# libreoffice-calc libreoffice-writer python3
python3 -c 'print("\n".join(",".join(str(i*j) for j in range(30)) for i in range(3000)))' >a.csv
timeout -k 5 120 $ON soffice --headless -env:UserInstallation=file://$WORK/u --convert-to xlsx a.csv >/dev/null 2>err
R=$?
ls *.xlsx
timeout -k 5 120 $ON soffice --headless -env:UserInstallation=file://$WORK/u --convert-to pdf a.xlsx >/dev/null 2>>err
ls *.pdf
exit $R
