# python3-numpy python3-scipy python3-pandas python3-matplotlib python3-lxml
$ON python3 -c '
import numpy as np, scipy.linalg as l, pandas as pd, threading
a=np.random.RandomState(1).rand(400,400); print(round(float(np.trace(a@l.inv(a)))))
d=pd.DataFrame({"k":np.arange(200000)%777,"v":np.arange(200000.)}); print(d.groupby("k").v.sum().sum(), len(d.merge(d[:5000],on="k")))
ts=[threading.Thread(target=lambda:[np.ones(i) for i in range(5000)]) for _ in range(6)]; [t.start() for t in ts]; [t.join() for t in ts]
import matplotlib; matplotlib.use("agg"); import matplotlib.pyplot as p; p.plot(np.arange(10000)); p.savefig("o.png"); print("ok")
import lxml.etree as e; t=e.fromstring("<a>"+"<b c=\"1\">x</b>"*50000+"</a>"); print(len(t.xpath("//b")))
import multiprocessing as m
print(sum(m.get_context("fork").Pool(4).map(len,["x"*i for i in range(1000)])))
' && PYTHONMALLOC=malloc $ON python3 -c 'import json; d=json.loads(json.dumps([{"a":i,"b":str(i)} for i in range(200000)])); print(len(d))'
